// Command lambda serves the family docs as a function.
package main

import (
	"os"

	"gateway/functions/docs"
	"gateway/functions/docs/document"
	"gateway/functions/docs/toolbox"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/host/administration"
)

func main() {
	administration.Main(func(c *app.Core) []admin.Family {
		return []admin.Family{docs.Serve(toolbox.Calling(toolbox.RemoteAPI{Base: os.Getenv(onaws.EnvPublicURL), Transport: c.Transport}), document.JSON)}
	})
}
