package segment

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
