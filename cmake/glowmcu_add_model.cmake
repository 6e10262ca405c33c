# glowmcu_add_model(<target> <model.onnx>
#     [TARGET <processor>] [QUANTIZE <none|int8>] [CALIBRATION <file.npz>] [OPTIONS <option>...])
#
# Compiles an ONNX model when CMake configures and makes the library <target> of the result: link
# it and include "<target>.h". CMake configures again when the model or the calibration changes.
# Include this file from where it is installed: `glowmcu --cmake-dir` prints its folder.
# OPTIONS are passed on to `glowmcu compile`. GLOWMCU_PYTHON is the Python that has glowmcu.

set(GLOWMCU_PYTHON "" CACHE FILEPATH "Python interpreter in which glowmcu is installed")

function(glowmcu_add_model target model)
    cmake_parse_arguments(PARSE_ARGV 2 ARG "" "TARGET;QUANTIZE;CALIBRATION" "OPTIONS")
    if(ARG_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "glowmcu_add_model(${target}): unknown ${ARG_UNPARSED_ARGUMENTS}")
    endif()
    get_filename_component(model "${model}" ABSOLUTE)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.glowmcu")
    set(command -m glowmcu compile "${model}" -o "${folder}" --name ${target} --quiet)
    if(ARG_TARGET)
        list(APPEND command --target ${ARG_TARGET})
    endif()
    if(ARG_QUANTIZE)
        list(APPEND command --quantize ${ARG_QUANTIZE})
    endif()
    if(ARG_CALIBRATION)
        get_filename_component(calibration "${ARG_CALIBRATION}" ABSOLUTE)
        list(APPEND command --calibration "${calibration}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${model}" ${calibration})

    _glowmcu_python(python)
    file(REMOVE_RECURSE "${folder}")
    # CMake exports its compiler as CC, but the self-test is made with one for this machine
    set(host "")
    if(CMAKE_CROSSCOMPILING)
        set(host "${CMAKE_COMMAND}" -E env --unset=CC --unset=CXX)
    endif()
    execute_process(COMMAND ${host} "${python}" ${command} ${ARG_OPTIONS}
        RESULT_VARIABLE status ERROR_VARIABLE errors)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "glowmcu_add_model(${target}): ${errors}")
    endif()
    add_subdirectory("${folder}" "${folder}/build")
endfunction()

function(_glowmcu_python result)
    if(GLOWMCU_PYTHON)
        set(${result} "${GLOWMCU_PYTHON}" PARENT_SCOPE)
        return()
    endif()
    find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
    set(${result} "${Python3_EXECUTABLE}" PARENT_SCOPE)
endfunction()
