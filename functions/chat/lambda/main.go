// Command lambda serves the family chat as a function.
package main

import (
	"gateway/functions/chat"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(chat.Routes(), plane.Translators()) }
