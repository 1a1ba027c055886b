// Command lambda serves the family images as a function.
package main

import (
	"gateway/functions/images"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(images.Routes(), plane.Translators()) }
