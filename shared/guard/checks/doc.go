// Package checks is the register: it tells which function runs each check of the table. It
// is the one place that joins the packages with checks.
package checks
