// Command lambda serves the family moderations as a function.
package main

import (
	"gateway/functions/moderations"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(moderations.Routes(), plane.Translators()) }
