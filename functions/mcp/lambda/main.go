// Command lambda serves the routes of package mcp as a function.
package main

import (
	"gateway/functions/mcp"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(mcp.Routes(), plane.RowTranslators()) }
