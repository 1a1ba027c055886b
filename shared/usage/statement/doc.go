// Package statement reads what providers say they have charged: exports of their usage
// and of their invoices. Each becomes lines of one form, which our books are held
// against.
package statement
