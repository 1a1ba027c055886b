// Command lambda serves the family responses as a function.
package main

import (
	"gateway/functions/responses"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(responses.Routes(), plane.Translators()) }
