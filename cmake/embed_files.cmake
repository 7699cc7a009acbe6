# Writes OUT, a C++ file with the texts of FILES (names below ROOT, separated by commas): FUNCTION() of NAMESPACE gives them
# as HEADER declares it, a span of EmbeddedFile.
string(REPLACE "," ";" names "${FILES}")
set(body "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nnamespace {\n\n")
string(APPEND body "constexpr EmbeddedFile kFiles[] = {\n")
foreach(name IN LISTS names)
  file(READ ${ROOT}/${name} text)
  string(APPEND body "    {\"${name}\", R\"fleuve_file(${text})fleuve_file\"},\n")
endforeach()
string(APPEND body "};\n\n}  // namespace\n\nstd::span<const EmbeddedFile> ${FUNCTION}() { return kFiles; }\n\n")
string(APPEND body "}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUT} "${body}")
