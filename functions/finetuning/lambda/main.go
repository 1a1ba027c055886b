// Command lambda serves the family finetuning as a function.
package main

import (
	"gateway/functions/finetuning"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(finetuning.Routes(), plane.RowTranslators(), plane.Jobs()...) }
