// Package drive uses an API by its OpenAPI document alone, as tools do that keep
// resources as they are declared: it makes what a body refers to first, fills
// bodies from examples and schemas, finds what it made by the links of the answer,
// and compares what is read with what was sent. It knows no resource by name.
package drive
