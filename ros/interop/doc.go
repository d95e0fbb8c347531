// Package interop proves ros/rtps and ros/dds against programs whose wire this project did not write: a Fast DDS program
// in C++ and a Cyclone DDS program in C, which behave as rmw_fastrtps_cpp and rmw_cyclonedds_cpp do. Their sources lie in
// peers; the package builds them with the machine's compilers and keeps them in the user's cache.
package interop
