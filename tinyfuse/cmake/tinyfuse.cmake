# tinyfuse_add_model: a .tflite as a library of a CMake project. For CMake 3.17 or later.
#
#   find_package(Python3 REQUIRED COMPONENTS Interpreter)
#   execute_process(COMMAND "${Python3_EXECUTABLE}" -P -m tinyfuse cmake-dir
#                   OUTPUT_VARIABLE dir OUTPUT_STRIP_TRAILING_WHITESPACE)
#   include("${dir}/tinyfuse.cmake")
#   tinyfuse_add_model(digits digits.tflite TARGET cortex-m4)
#   target_link_libraries(firmware PRIVATE digits)

# tinyfuse_add_model(<library> <model.tflite> TARGET <core> [NAME <name>] [FEED_ROWS]
#                    [FRONT_END <front.tflite>] [SLIDE <frames>] [OPTIONS <option>...])
#
# Generates C from the model and adds it as a static library under the name <library>. What links
# it can include <name>.h.
#
#   <model.tflite>  absolute, or relative to the current source directory
#   TARGET          a core that `tinyfuse targets` lists; the compiler's CPU flags are the project's
#   NAME            prefix of the module's C names, and of its header's; without one it is <library>, with "_" for
#                   what a C name can't have
#   FEED_ROWS       the image is brought row by row: NAME_begin, NAME_feed_rows, NAME_finish
#   FRONT_END       a model in front of it, of `tinyfuse front-end`; found as the model is
#   SLIDE           a window of frames that moves by so many in each step: NAME_slide
#   OPTIONS         further options of `tinyfuse gen`, such as --optimize ram or --bundle
#
# The module is generated when CMake configures, so that its own CMakeLists.txt (a library target
# called <name>) says what to compile. A changed model, or another version of tinyfuse, makes the next
# build configure again; files that come out the same are not compiled again.
if(CMAKE_VERSION VERSION_LESS 3.17)
  message(FATAL_ERROR "tinyfuse.cmake needs CMake 3.17 or later; this is ${CMAKE_VERSION}")
endif()

function(tinyfuse_add_model library model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "FEED_ROWS" "TARGET;NAME;FRONT_END;SLIDE" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tinyfuse_add_model: unexpected arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TARGET)
    message(FATAL_ERROR "tinyfuse_add_model: TARGET is missing, for example: TARGET cortex-m4")
  endif()
  get_filename_component(model "${model}" ABSOLUTE)
  if(NOT arg_NAME)
    string(REGEX REPLACE "[^A-Za-z0-9]+" "_" arg_NAME "${library}")
  endif()
  if(arg_FEED_ROWS)
    list(APPEND arg_OPTIONS --feed-rows)
  endif()
  if(arg_FRONT_END)
    get_filename_component(arg_FRONT_END "${arg_FRONT_END}" ABSOLUTE)
    list(APPEND arg_OPTIONS --front-end "${arg_FRONT_END}")
  endif()
  if(arg_SLIDE)
    list(APPEND arg_OPTIONS --slide "${arg_SLIDE}")
  endif()
  string(MAKE_C_IDENTIFIER "${library}" folder)
  # not "tinyfuse/": Python, started here with -m, could take that for the package
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/tinyfuse-models/${folder}")

  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    "${model}" ${arg_FRONT_END} "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../__init__.py")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  execute_process(
    # -P: whatever lies in the working folder is no module
    COMMAND "${Python3_EXECUTABLE}" -P -m tinyfuse gen "${model}"
      --target "${arg_TARGET}" --name "${arg_NAME}" -o "${folder}" ${arg_OPTIONS}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result)
    string(REPLACE "\n" "\n  " output "${output}") # indented lines are printed as they are
    message(FATAL_ERROR "tinyfuse gen failed (${result}):\n  ${output}")
  endif()

  add_subdirectory("${folder}" "${folder}.build")
  if(NOT library STREQUAL arg_NAME)
    add_library("${library}" ALIAS "${arg_NAME}")
  endif()
endfunction()
