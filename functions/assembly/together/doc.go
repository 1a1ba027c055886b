// Package together holds tests of families with one another and with the data plane. Their
// servers and callers run side by side, so they need the race detector. The large tables of
// package assembly do not.
package together
