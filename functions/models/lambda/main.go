// Command lambda serves the family models as a function.
package main

import (
	"gateway/functions/models"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(models.Routes(), plane.Translators()) }
