// Command lambda serves the family mcp as a function.
package main

import (
	"gateway/functions/mcp"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(mcp.Routes()) }
