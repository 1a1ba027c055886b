// Package mcptest contains what the tests of several hosts share to show that sessions survive
// a restart of the process between client and server. Only tests import it.
package mcptest
