// Command lambda serves the family messages as a function.
package main

import (
	"gateway/functions/messages"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(messages.Routes(), plane.Translators()) }
