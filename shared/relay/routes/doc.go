// Package routes holds what a family of the data plane declares of its routes, and
// finds the route of a request.
package routes
