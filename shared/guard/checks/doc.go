// Package checks is the registry that maps the checks of the table to their functions.
package checks
