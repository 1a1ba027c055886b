// Package authz decides who may use which server and which of its capabilities:
// one function, which lists and calls ask alike.
package authz
