// Command lambda serves the family promptruns as a function.
package main

import (
	"gateway/functions/promptruns"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(promptruns.Routes(), plane.Translators()) }
