// Command lambda serves the family dryrun as a function.
package main

import (
	"slices"

	"gateway/functions/audio"
	"gateway/functions/chat"
	"gateway/functions/dryrun"
	"gateway/functions/embeddings"
	"gateway/functions/images"
	"gateway/functions/messages"
	"gateway/functions/moderations"
	"gateway/functions/passthrough"
	"gateway/functions/promptruns"
	"gateway/functions/rerank"
	"gateway/functions/responses"
	"gateway/shared/app/plane"
	"gateway/shared/host/dataplane"
	"gateway/shared/relay/tools"
)

func main() {
	dataplane.Main(dryrun.Routes(tools.Loop(slices.Concat(chat.Routes(), messages.Routes(), responses.Routes(), embeddings.Routes(), moderations.Routes(),
		images.Routes(), audio.Routes(), rerank.Routes(), promptruns.Routes(), passthrough.Routes()))), plane.Translators())
}
