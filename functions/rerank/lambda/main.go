// Command lambda serves the family rerank as a function.
package main

import (
	"gateway/functions/rerank"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
)

func main() { dataplane.Main(rerank.Routes(), plane.Translators()) }
