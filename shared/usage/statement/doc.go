// Package statement reads what providers say that they have charged: exports of their usage
// and of their invoices. It turns each into lines of one form, which are compared with our
// books.
package statement
