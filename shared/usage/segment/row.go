package segment

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	kzstd "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"gateway/shared/usage"
)

// row is one record in the Parquet file: columns for filters, groups and sums, for the
// gateway and for other tools, and the whole record (without its bodies) as an event.
// Column names never change; new ones may be added. Money is in nano-dollars, times are
// in microseconds.
type row struct {
	ID            string            `parquet:"id"`
	Start         int64             `parquet:"start,timestamp(microsecond)"`
	Org           string            `parquet:"organisation,dict"`
	Workspace     string            `parquet:"workspace,dict"`
	WorkspaceSlug string            `parquet:"workspace_slug,dict"`
	KeyID         string            `parquet:"api_key,dict"`
	KeyType       string            `parquet:"api_key_type,dict"`
	UserID        string            `parquet:"user,dict"`
	EndUser       string            `parquet:"end_user,dict"`
	Metadata      map[string]string `parquet:"metadata" parquet-key:",dict" parquet-value:",dict"`
	TraceID       string            `parquet:"trace_id"`
	SpanID        string            `parquet:"span_id"`
	Endpoint      string            `parquet:"endpoint,dict"`
	RequestModel  string            `parquet:"request_model,dict"`
	Model         string            `parquet:"model,dict"`
	Provider      string            `parquet:"provider,dict"`
	ProviderSlug  string            `parquet:"provider_slug,dict"`
	IntegrationID string            `parquet:"integration,dict"`
	Config        string            `parquet:"config,dict"`
	Prompt        string            `parquet:"prompt,dict"`
	Mode          string            `parquet:"mode,dict"`
	OptionIndex   string            `parquet:"option,dict"`
	CacheStatus   string            `parquet:"cache_status,dict"`
	FinishReason  string            `parquet:"finish_reason,dict"`
	ErrorCode     string            `parquet:"error_code,dict"`
	Status        string            `parquet:"status,dict"`
	Retries       string            `parquet:"retries,dict"`
	Fallback      string            `parquet:"fallback,dict"`
	Stream        bool              `parquet:"stream"`
	Priced        bool              `parquet:"priced"`
	Estimated     bool              `parquet:"estimated"`
	Cost          int64             `parquet:"cost"`
	Saved         int64             `parquet:"cache_saved"`
	TokensIn      int64             `parquet:"tokens_in"`
	TokensOut     int64             `parquet:"tokens_out"`
	Duration      int64             `parquet:"duration"`
	WithUser      int64             `parquet:"with_user"`
	FirstByte     int64             `parquet:"time_to_first_byte"`
	Upstream      int64             `parquet:"upstream_latency"`
	Gateway       int64             `parquet:"gateway_time"`
	RequestBytes  int64             `parquet:"request_bytes"`
	ResponseBytes int64             `parquet:"response_bytes"`
	BodyPack      string            `parquet:"body_pack,dict"` // key of the pack with the bodies; "" for this segment's pack
	BodyOffset    int64             `parquet:"body_offset"`
	BodyLength    int64             `parquet:"body_length"` // 0 without bodies
	Event         []byte            `parquet:"event"`
	PromptVersion string            `parquet:"prompt_version,dict"`
	Experiment    string            `parquet:"experiment,dict"`
	Session       string            `parquet:"session,dict"`
	Agent         string            `parquet:"agent,dict"`
	ParentAgent   string            `parquet:"parent_agent,dict"`
	ParentSpan    string            `parquet:"parent_span_id"`
	Running       int64             `parquet:"gateway_cost"`
}

// dimColumns and intColumns are the column names of a Dim and an Int.
var dimColumns = [NumDims]string{
	Workspace: "workspace", WorkspaceSlug: "workspace_slug", Key: "api_key", KeyType: "api_key_type", Provider: "provider",
	ProviderSlug: "provider_slug", Model: "model", Config: "config", Prompt: "prompt", CacheStatus: "cache_status", Endpoint: "endpoint",
	Status: "status", Retries: "retries", Fallback: "fallback", EndUser: "end_user", UserID: "user", TraceID: "trace_id", SpanID: "span_id",
	Mode: "mode", RequestModel: "request_model", PromptVersion: "prompt_version", Experiment: "experiment", ID: "id",
	Session: "session", Agent: "agent", ParentAgent: "parent_agent",
}

var intColumns = [NumInts]string{Start: "start", Cost: "cost", Saved: "cache_saved", TokensIn: "tokens_in", TokensOut: "tokens_out", Duration: "duration", WithUser: "with_user", Running: "gateway_cost"}

// Column and NumberColumn return the column name of a Dim and an Int.
func Column(d Dim) string       { return dimColumns[d] }
func NumberColumn(i Int) string { return intColumns[i] }

// bodyRef is the location of a record's sealed bodies.
type bodyRef struct {
	pack           string
	offset, length int64
}

// fill sets the row of a record. It appends the event, without the record's bodies, to
// arena and returns arena.
func (w *row) fill(r *usage.Record, ref bodyRef, arena []byte) []byte {
	from, bare := len(arena), *r
	bare.Bodies = nil
	arena = bare.AppendEvent(arena)
	*w = row{
		ID: r.ID, Start: r.Start.UnixMicro(), Org: r.Org, Workspace: r.Workspace, WorkspaceSlug: r.WorkspaceSlug, KeyID: r.KeyID, KeyType: r.KeyType,
		UserID: r.UserID, EndUser: r.EndUser, Metadata: r.Metadata, TraceID: r.TraceID, SpanID: r.SpanID, Endpoint: r.Endpoint, RequestModel: r.RequestModel,
		Model: r.Model, Provider: r.Provider, ProviderSlug: r.ProviderSlug, IntegrationID: r.IntegrationID, Config: r.ConfigSlug, Prompt: r.PromptSlug,
		Mode: r.Mode, OptionIndex: r.OptionIndex, CacheStatus: r.CacheStatus, FinishReason: r.FinishReason, ErrorCode: r.ErrorCode,
		Status: dimension(r, Status), Retries: dimension(r, Retries), Fallback: dimension(r, Fallback),
		Stream: r.Stream, Priced: r.Priced, Estimated: r.Usage.Estimated, Cost: int64(r.Cost), Saved: int64(r.CacheSaved),
		TokensIn: r.Usage.InputTokens(), TokensOut: r.Usage.OutputTokens(), Duration: r.Duration.Microseconds(), WithUser: withUser(r),
		FirstByte: r.TimeToFirstByte.Microseconds(), Upstream: r.UpstreamLatency.Microseconds(), Gateway: r.GatewayTime.Microseconds(),
		RequestBytes: r.RequestBytes, ResponseBytes: r.ResponseBytes,
		BodyPack: ref.pack, BodyOffset: ref.offset, BodyLength: ref.length, Event: arena[from:len(arena):len(arena)],
		PromptVersion: promptVersion(r), Experiment: r.Experiment(),
		Session: r.Agent.Session, Agent: r.Agent.ID, ParentAgent: r.Agent.Parent, ParentSpan: r.ParentSpanID, Running: int64(r.Running),
	}
	return arena
}

// promptVersion returns the version of the prompt, in decimal.
func promptVersion(r *usage.Record) string {
	if _, n := r.PromptVersion(); n > 0 {
		return decimal(n)
	}
	return ""
}

// numColumns is the number of columns of a file.
var numColumns = int64(len(parquet.SchemaOf(row{}).Columns()))

// groupRows is the number of records in a row group; a row group is read or skipped
// completely.
const groupRows = 1 << 15

// encoder writes rows as a Parquet file into memory. Encoders for batches are reused,
// because a Parquet writer has buffers for every column.
type encoder struct {
	out  bytes.Buffer
	w    *parquet.GenericWriter[row]
	rows int
}

// pageBuffers hold finished pages until their file is written. Their chunks are as small
// as the pages of a batch; the library's default takes 256 KiB per column.
var pageBuffers = parquet.NewChunkBufferPool(8 << 10)

func newEncoder(codec compress.Codec, page int, more ...parquet.WriterOption) func() *encoder {
	return func() *encoder {
		e := new(encoder)
		e.w = parquet.NewGenericWriter[row](&e.out, append([]parquet.WriterOption{parquet.Compression(codec), parquet.PageBufferSize(page),
			parquet.ColumnPageBuffers(pageBuffers), parquet.CreatedBy("gateway", "1", ""), parquet.DataPageStatistics(false)}, more...)...)
		return e
	}
}

// skipBounds omits the minimum and maximum of every column except Start. In a file that
// covers a short time nothing reads them, and computing them is a large part of the work.
// Other tools would take missing values for empty texts, so files that they may see have
// all of them.
var skipBounds = func() (skip []parquet.WriterOption) {
	for _, path := range parquet.SchemaOf(row{}).Columns() {
		if path[0] != intColumns[Start] {
			skip = append(skip, parquet.SkipPageBounds(path...))
		}
	}
	return skip
}()

// Batches are written often and merged soon, so they use cheap compression. Merged
// segments remain, so they use stronger compression and larger pages. Every column
// buffers a page: pages of four times this size would need 5 MB more during a merge and
// shrink a file only by a few percent.
var (
	inlineEncoders  = &spare[encoder]{make: newEncoder(new(fastSnappy), 8<<10, skipBounds...)} // for the store
	quickEncoders   = &spare[encoder]{make: newEncoder(new(fastSnappy), 8<<10)}                // for the bucket
	newMergeEncoder = newEncoder(new(narrowZstd), 32<<10, bloomFilters)
	// smallEncoders are for merges, which run a minute apart: their memory is freed in
	// between.
	smallEncoders = sync.Pool{New: func() any { return newMergeEncoder() }}
)

// encodeBatch writes the rows of a batch and calls use with the file, which is valid until
// use returns. events is the total size of the rows' events.
func encodeBatch(rows []row, events, inline int, use func(file []byte) error) error {
	pool := inlineEncoders
	if events > inline {
		pool = quickEncoders
	}
	e := pool.get()
	defer func() {
		if e.out.Cap() <= maxSpare {
			pool.put(e)
		}
	}()
	e.reset()
	if err := e.write(rows); err != nil {
		return err
	}
	file, err := e.finish()
	if err != nil {
		return err
	}
	if pool == inlineEncoders && len(file) > inline {
		return encodeBatch(rows, len(file), inline, use)
	}
	return use(file)
}

// narrowZstd writes Zstandard with a window of two pages. The library's default retains
// 16 MiB of history for pages of 32 KiB. The next compression level needs a megabyte more
// for tables and gains nothing for columns with short pages.
type narrowZstd struct{ zstd.Codec }

const zstdWindow = 64 << 10

var zstdEncoder = sync.OnceValues(func() (*kzstd.Encoder, error) {
	return kzstd.NewWriter(nil, kzstd.WithEncoderLevel(kzstd.SpeedFastest), kzstd.WithEncoderConcurrency(1), kzstd.WithWindowSize(zstdWindow),
		kzstd.WithLowerEncoderMem(true), kzstd.WithZeroFrames(true), kzstd.WithEncoderCRC(false))
})

// Encode implements compress.Codec.
func (*narrowZstd) Encode(dst, src []byte) ([]byte, error) {
	e, err := zstdEncoder()
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(src, dst[:0]), nil
}

// fastSnappy writes Snappy with small tables. The library's default uses half a megabyte
// to save a few percent, in files that exist for a minute.
type fastSnappy struct{ snappy.Codec }

// Encode implements compress.Codec.
func (*fastSnappy) Encode(dst, src []byte) ([]byte, error) {
	return s2.EncodeSnappy(dst[:cap(dst)], src), nil
}

func (e *encoder) reset() {
	e.out.Reset()
	e.w.Reset(&e.out)
	e.rows = 0
}

func (e *encoder) write(rows []row) error {
	if _, err := e.w.Write(rows); err != nil {
		return fmt.Errorf("segment: write: %w", err)
	}
	if e.rows += len(rows); e.rows >= groupRows {
		e.rows = 0
		if err := e.w.Flush(); err != nil {
			return fmt.Errorf("segment: write: %w", err)
		}
	}
	return nil
}

// finish returns the file, which is valid until the next reset.
func (e *encoder) finish() ([]byte, error) {
	if err := e.w.Close(); err != nil {
		return nil, fmt.Errorf("segment: write: %w", err)
	}
	return e.out.Bytes(), nil
}

// Dim is a dimension by which records are filtered or grouped. Those before NumCubeDims are
// in cubes.
type Dim uint8

const (
	Workspace     Dim = iota
	WorkspaceSlug     //
	Key               // id of the API key
	KeyType           //
	Provider          // type name, e.g. openai
	ProviderSlug      // saved provider
	Model             //
	Config            // slug
	Prompt            // slug
	CacheStatus       //
	Endpoint          // request type
	Status            // HTTP status, in decimal
	Retries           // retry count, in decimal
	Fallback          // "1" if a later target of a fallback responded
	NumCubeDims

	EndUser Dim = iota - 1 // metadata _user
	UserID
	TraceID
	SpanID
	Mode
	RequestModel
	PromptVersion // in decimal; empty without a prompt
	Experiment    // id of the experiment that selected the version
	ID
	Session     // of a coding agent
	Agent       //
	ParentAgent //
	NumDims
)

// Int is a number of each record; in a cube it is the sum over the records of a cell.
type Int uint8

const (
	Start     Int = iota // microseconds since 1970; in a cube it is the cell's hour
	Cost                 // nano-dollars
	Saved                // nano-dollars
	TokensIn             //
	TokensOut            //
	Duration             // microseconds
	WithUser             // 1 if the record has an end user
	Running              // nano-dollars
	NumInts
)

// Strings is a text column: each row has the code of one of the values. Two codes may
// have the same value. Without codes every row has the only value.
type Strings struct {
	Values []string
	Codes  []uint32
}

// Code returns the code of row i.
func (s *Strings) Code(i int) uint32 {
	if s.Codes == nil {
		return 0
	}
	return s.Codes[i]
}

// At returns the value of row i.
func (s *Strings) At(i int) string { return s.Values[s.Code(i)] }

func (s *Strings) size() int64 {
	n := int64(4*len(s.Codes)) + 48
	for _, v := range s.Values {
		n += int64(len(v)) + 16
	}
	return n
}

// Table is a list of records, or of cells of a cube, by column. Columns that were not
// requested are nil.
type Table struct {
	N    int
	Dims [NumDims]*Strings
	Ints [NumInts][]int64

	// Only for cells; nil for records.
	Count       []int64 // records in the cell
	First, Last []int64 // Start of the first and last record
	durations   []packed
}

// Records returns the number of records that row i represents.
func (t *Table) Records(i int) int64 {
	if t.Count == nil {
		return 1
	}
	return t.Count[i]
}

// Seen returns the Start of the first and the last record of row i.
func (t *Table) Seen(i int) (first, last int64) {
	if t.First == nil {
		return t.Ints[Start][i], t.Ints[Start][i]
	}
	return t.First[i], t.Last[i]
}

// Durations adds the durations of row i to h.
func (t *Table) Durations(i int, h *Histogram) {
	if t.durations == nil {
		h.Add(t.Ints[Duration][i])
		return
	}
	t.durations[i].mergeInto(h)
}
