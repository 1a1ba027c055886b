// Command lambda serves the family batches as a function.
package main

import (
	"gateway/functions/batches"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(batches.Routes(), plane.RowTranslators(), plane.Jobs()...) }
