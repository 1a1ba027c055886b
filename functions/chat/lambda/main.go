// Command lambda serves the family chat as a function.
package main

import (
	"gateway/functions/chat"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(chat.Routes()) }
