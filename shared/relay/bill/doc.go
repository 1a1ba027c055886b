// Package bill is the money of one request on its walk: what policies say of it,
// which limits it counts by, what is reserved for a target, what its answer costs, and
// who is charged.
package bill
