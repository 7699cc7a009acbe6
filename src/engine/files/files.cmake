# Readers and writers of text formats, and schema inference: part of the engine room.
set(ENGINE_FILES_SOURCES
  files/avro_documents.cc files/byte_stream.cc files/csv_reader.cc files/csv_record.cc files/date_pattern.cc files/file_functions.cc
  files/format_options.cc files/infer_csv.cc files/infer_json.cc files/json_reader.cc files/json_scanner.cc
  files/json_value.cc files/parquet_schema.cc files/row_target.cc files/row_writer.cc files/text_reader.cc
  files/text_value.cc files/xml_documents.cc)
set(ENGINE_FILES_LIBRARIES ZLIB::ZLIB BZip2::BZip2 simdjson::simdjson)
set(ENGINE_FILES_TESTS files/files_test.cc)
