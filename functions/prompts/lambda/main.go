// Command lambda serves the family prompts as a function.
package main

import (
	"gateway/functions/prompts"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(*app.Core) []admin.Family { return []admin.Family{prompts.New()} })
}
