// Command lambda serves the family audio as a function.
package main

import (
	"gateway/functions/audio"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(audio.Routes(), plane.Translators()) }
