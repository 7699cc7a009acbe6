// Stands before the library's header of this name in builds with TSan. That header gives a class two more members
// there, which the prebuilt library does not know: the two would write over each other's.
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
