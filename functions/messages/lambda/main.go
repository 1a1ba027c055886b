// Command lambda serves the family messages as a function.
package main

import (
	"gateway/functions/messages"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
	"gateway/shared/relay/tools"
)

func main() { dataplane.Main(tools.Loop(messages.Routes()), plane.Translators()) }
