// Command lambda serves the family modelpricing as a function.
package main

import (
	"gateway/functions/modelpricing"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
	"gateway/shared/pricing"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{modelpricing.New(pricing.Default())} })
}
