// Package server is a small rosbridge v2 server over any ros.Node: a stand-in for rosbridge_suite in tests, and the twin's
// own bridge. It is written from the protocol alone and shares nothing with the client, so that one can prove the other.
//
// Each way in which versions of rosbridge_suite surprise their clients is a switch in Caveats. A server with none of them
// is as good as the protocol allows.
package server
