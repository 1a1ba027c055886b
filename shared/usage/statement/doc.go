// Package statement parses providers' exports of usage and of invoices into lines of one
// form, for comparison with the gateway's records.
package statement
