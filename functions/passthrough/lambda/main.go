// Command lambda serves the family passthrough as a function.
package main

import (
	"gateway/functions/passthrough"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(passthrough.Routes(), plane.Translators()) }
