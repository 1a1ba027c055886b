// Package checks is the register: which function runs each check of the table. It is
// the one place where the parts that know checks are put together.
package checks
