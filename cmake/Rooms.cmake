# Rooms: one folder of src/ = one static library `fleuve_<room>` = one namespace.
#
#   fleuve_room(delta USES base types storage THIRD_PARTY ${ROARING} SOURCES snapshot.cc ... TESTS snapshot_test.cc ...)
#
# USES lists the only rooms whose headers this room may include; tools/check_rooms compares it with the includes.
# A test file stands beside the code; all test files of a room make one program `<room>_test`. TEST_USES may name more
# rooms for the tests alone. A room in a subfolder (connectors/delta) is named connectors_delta.
function(fleuve_room NAME)
  cmake_parse_arguments(ARG "" "" "USES;THIRD_PARTY;SOURCES;TESTS;TEST_USES" ${ARGN})
  set(target fleuve_${NAME})
  list(TRANSFORM ARG_USES PREPEND fleuve_ OUTPUT_VARIABLE used)
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC ${used} Threads::Threads PRIVATE ${ARG_THIRD_PARTY} fleuve_warnings)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} INTERFACE ${used})
  endif()
  if(ARG_TESTS)
    list(TRANSFORM ARG_TEST_USES PREPEND fleuve_ OUTPUT_VARIABLE test_used)
    add_executable(${NAME}_test ${ARG_TESTS})
    target_include_directories(${NAME}_test PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${NAME}_test PRIVATE ${target} ${test_used} ${ARG_THIRD_PARTY} GTest::gmock GTest::gtest_main
                          fleuve_warnings)
    add_test(NAME ${NAME} COMMAND ${NAME}_test)
    set_tests_properties(${NAME} PROPERTIES TIMEOUT 300)
  endif()
endfunction()

# A Python module as part of the binary: python/MODULE/*.py become OUT.cc in the current binary folder. FUNCTION() of
# NAMESPACE, declared in HEADER, gives them as a span of EmbeddedFile.
function(fleuve_embed_python MODULE OUT HEADER NAMESPACE FUNCTION)
  set(root ${CMAKE_SOURCE_DIR}/python)
  file(GLOB_RECURSE names CONFIGURE_DEPENDS RELATIVE ${root} ${root}/${MODULE}/*.py)
  list(TRANSFORM names PREPEND ${root}/ OUTPUT_VARIABLE paths)
  string(JOIN "," joined ${names})
  add_custom_command(
    OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${OUT}.cc
    COMMAND ${CMAKE_COMMAND} -DROOT=${root} -DFILES=${joined} -DHEADER=${HEADER} -DNAMESPACE=${NAMESPACE}
            -DFUNCTION=${FUNCTION} -DOUT=${CMAKE_CURRENT_BINARY_DIR}/${OUT}.cc -P ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${paths} ${CMAKE_SOURCE_DIR}/cmake/embed_files.cmake
    VERBATIM)
endfunction()
