// Command lambda serves the family files as a function.
package main

import (
	"gateway/functions/files"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(files.Routes(), plane.RowTranslators(), plane.Jobs()...) }
