// Command lambda serves the family responses as a function.
package main

import (
	"gateway/functions/responses"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(responses.Routes()) }
