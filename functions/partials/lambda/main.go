// Command lambda serves the family partials as a function.
package main

import (
	"gateway/functions/partials"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{partials.New()} })
}
