// Package together holds tests of families with one another and with the data plane.
// Servers and callers run side by side in them: they need the race detector, which
// the large tables of package assembly do without.
package together
