// Command lambda serves the family responses as a function.
package main

import (
	"gateway/functions/responses"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
	"gateway/shared/relay/tools"
)

func main() { dataplane.Main(tools.Loop(responses.Routes()), plane.Translators()) }
