// Package plane assembles the data plane from the core of an installation.
package plane

import (
	"net"
	"time"

	"gateway/shared/app"
	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/dialect/ai21"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/bytez"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/image"
	"gateway/shared/dialect/job"
	"gateway/shared/dialect/oci"
	"gateway/shared/dialect/ocr"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/palm"
	"gateway/shared/dialect/reka"
	"gateway/shared/dialect/rerank"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/triton"
	"gateway/shared/dialect/workersai"
	"gateway/shared/guard/checks"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/usage"
)

// Options are what differs between hosts.
type Options struct {
	// RecordAfterBody writes the books after the response has ended (Lambda).
	RecordAfterBody bool
	// Drain is how long a response is read on after its client went; 0: 30 s.
	Drain time.Duration
	// Faults is called with failures that no caller sees; nil: they are logged.
	Faults func(where string, err error)
	// Jobs carry files, batches and fine-tuning jobs. A process with such routes gives
	// Jobs(); where none are given, the linker leaves them out.
	Jobs []chat.Jobs
	// Translators carry the operations that are not conversations: Translators(), or
	// RowTranslators() in a process that serves rows alone. The linker leaves the others out.
	Translators []chat.Translator
	// Sessions serves routes with Sockets: relay.NewSessions(); nil: they are rejected.
	Sessions *relay.Sessions
	// Vectors is the index of the semantic cache; nil: one in the tables.
	Vectors cache.VectorIndex
}

// New makes the relay that the data-plane families share.
func New(c *app.Core, sink usage.Sink, o Options) *relay.Relay {
	return relay.New(relay.Options{
		Loader: c.Loader, Auth: c.Auth, Ledger: c.Ledger, Prices: c.Book(), Sink: sink,
		Sealer: c.Sealer, Store: c.Store, Transport: c.Transport, TrustedTransport: c.TrustedTransport, Egress: c.Egress, Now: c.Now,
		Dialects: Dialects(), Translators: o.Translators, Jobs: o.Jobs, Checks: checks.Makers(checks.Deps{Now: c.Now, LookUp: net.DefaultResolver.LookupHost, Signer: provider.NewTokens(c.Transport, c.Now)}), Bucket: c.Bucket, Runs: c.RunQueue,
		BlockInline: c.BlockInline, Signing: c.Signing,
		Cache:    NewCache(c, o.Vectors),
		Sessions: o.Sessions, RecordAfterBody: o.RecordAfterBody, DrainTime: o.Drain, Faults: o.Faults,
	})
}

// reloadVectors is how long a vector that another process has added may stay unseen.
const reloadVectors = 30 * time.Second

// NewCache is the cache of responses; vectors is nil for an index in the tables.
func NewCache(c *app.Core, vectors cache.VectorIndex) *cache.Cache {
	if vectors == nil {
		flat := cache.FlatOptions{Store: c.Store, Sealer: c.Sealer, Now: c.Now, Reload: reloadVectors}
		if c.Embedded {
			flat.Reload = 0 // there is no other writer
		}
		vectors = cache.NewFlat(flat)
	}
	return cache.New(cache.Options{Store: c.Store, Bucket: c.Bucket, Sealer: c.Sealer, VectorIndex: vectors, Now: c.Now})
}

// Dialects are the wire shapes of conversations that the gateway speaks.
func Dialects() []chat.Provider {
	return []chat.Provider{
		openai.Chat{}, openai.Completions{}, anthropic.Messages{},
		cohere.Chat{}, converse.Converse{}, gemini.Generate{},
		cohere.Generate{}, ai21.Complete{}, bedrock.Invoke{}, bytez.Chat{},
		oci.Chat{}, palm.Chat{}, palm.Text{},
		reka.Chat{}, triton.Generate{}, workersai.Run{},
		responses.Responses{},
	}
}

// Translators carry the operations that are not conversations.
func Translators() []chat.Translator {
	return append(RowTranslators(),
		bedrock.Images{}, bedrock.Rerank{}, cohere.Rerank{},
		rerank.Voyage{}, rerank.Jina{}, ocr.Mistral{}, ocr.Azure{},
		gemini.Imagen{},
		image.WorkersAI{}, image.SiliconFlow{}, image.Hyperbolic{}, image.Stability{}, image.Segmind{}, image.Fireworks{}, image.Fal{},
	)
}

// RowTranslators are the Translators that rows of batches may need: embeddings and counting
// of tokens.
func RowTranslators() []chat.Translator {
	return []chat.Translator{
		anthropic.CountTokens{}, bedrock.CountTokens{},
		bedrock.Embeddings{}, cohere.Embeddings{}, embedding.Voyage{}, embedding.Jina{}, embedding.Nomic{},
		ai21.Embeddings{}, palm.Embeddings{},
		gemini.Embeddings{}, gemini.VertexEmbeddings{}, gemini.VertexEmbedContent{},
	}
}

// Jobs carry files, batches and fine-tuning jobs of providers that have a shape of their
// own for them.
func Jobs() []chat.Jobs {
	return []chat.Jobs{job.Anthropic{}, job.Bedrock{}, job.Vertex{}, job.Mistral{}, job.TogetherAI{}, job.Fireworks{}, job.Cohere{}}
}
