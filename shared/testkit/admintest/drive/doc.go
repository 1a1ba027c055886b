// Package drive uses an API by its OpenAPI document alone, as declarative tools do. It creates
// the resources that a body refers to first, fills bodies from examples and schemas, finds
// created resources by the links of the response, and compares what it reads with what it sent.
// No resource is hard-coded.
package drive
