# SPDX-License-Identifier: Apache-2.0 OR MIT
# find_package(tdt) gives tdt::tdt, the shared library; find_package(tdt COMPONENTS rt) also gives
# tdt::rt, the runtime.  For the static libraries see docs/install.md.
# The real path: /lib may be a link to /usr/lib.
get_filename_component(tdt_lib "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
get_filename_component(tdt_include "${tdt_lib}/../include" ABSOLUTE)
macro(tdt_add name file)
	if(NOT TARGET tdt::${name} AND EXISTS "${tdt_lib}/${file}")
		add_library(tdt::${name} SHARED IMPORTED)
		set_target_properties(tdt::${name} PROPERTIES
			IMPORTED_LOCATION "${tdt_lib}/${file}"
			INTERFACE_INCLUDE_DIRECTORIES "${tdt_include}"
			INTERFACE_LINK_LIBRARIES "${ARGN}")
	endif()
	if(TARGET tdt::${name})
		set(tdt_${name}_FOUND TRUE)
	endif()
endmacro()
tdt_add(tdt libtdt.so)
tdt_add(rt libtdt-rt.so tdt::tdt)
foreach(tdt_name IN LISTS tdt_FIND_COMPONENTS ITEMS tdt)
	if(NOT tdt_${tdt_name}_FOUND AND (tdt_name STREQUAL tdt OR tdt_FIND_REQUIRED_${tdt_name}))
		set(tdt_FOUND FALSE)
		set(tdt_NOT_FOUND_MESSAGE "${tdt_lib} has no shared library for tdt::${tdt_name}")
	endif()
endforeach()
