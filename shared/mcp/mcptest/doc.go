// Package mcptest holds what tests of several hosts need to show that sessions outlive the
// process between client and server: a server that holds calls back, clients that keep
// their sessions whatever happens, and what may become of each call. Only tests import it.
package mcptest
