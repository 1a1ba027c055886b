package segment

import (
	"context"
	"slices"
)

// Part is a segment of a list, with the other segments that may contain the same records.
type Part struct {
	Manifest
	rivals []*Manifest // segments with precedence: this part skips records that they contain
	rival  bool        // another part skips this part's records
}

// Overlapped reports whether another part may skip records because this part contains
// them.
func (p *Part) Overlapped() bool { return p.rival }

// Overlaps reports whether the part may contain records to skip because another part
// contains them.
func (p *Part) Overlaps() bool { return len(p.rivals) > 0 }

// HashID returns the hash by which Duplicates identifies an event.
func HashID(id string) uint64 { return hashID(id) }

// Parts turns segments into parts such that every record is in exactly one part if each
// part skips its Duplicates. If several segments contain a record, the most merged one
// has precedence.
func Parts(list []Manifest) []Part { return partition(list, mostMerged) }

// PartsNotInFiles returns the parts of the segments without a file, for queries that
// other tools complete from the files: these parts skip every record that is in a file,
// even of a less merged segment.
func PartsNotInFiles(list []Manifest) []Part {
	parts := partition(list, func(x, y *Manifest) int {
		if x.InFile() != y.InFile() {
			if x.InFile() {
				return -1
			}
			return 1
		}
		return mostMerged(x, y)
	})
	return slices.DeleteFunc(parts, func(p Part) bool { return p.InFile() })
}

// mostMerged orders the most merged segment first.
func mostMerged(x, y *Manifest) int {
	if x.Tier != y.Tier {
		return int(y.Tier - x.Tier)
	}
	if x.ID < y.ID {
		return -1
	}
	return 1
}

// partition is Parts with a given order of precedence.
func partition(list []Manifest, order func(x, y *Manifest) int) []Part {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y Manifest) int { return order(&x, &y) })
	parts := make([]Part, len(list))
	byMin := make([]int, len(list))
	for i := range list {
		parts[i].Manifest = list[i]
		byMin[i] = i
	}
	slices.SortFunc(byMin, func(x, y int) int { return compare(list[x].Min, list[y].Min) })
	var open []int // segments that may overlap with later ones
	for _, i := range byMin {
		remaining := open[:0]
		for _, j := range open {
			if list[j].Max/sameTime < list[i].Min/sameTime {
				continue
			}
			remaining = append(remaining, j)
			second := max(i, j)
			parts[second].rivals = append(parts[second].rivals, &list[min(i, j)])
			parts[min(i, j)].rival = true
		}
		open = append(remaining, i)
	}
	return parts
}

// Duplicates returns the sorted hashes of the part's records that a segment with
// precedence contains; nil if there are none.
func (a *Archive) Duplicates(ctx context.Context, p *Part) ([]uint64, error) {
	var all []uint64
	for _, rival := range p.rivals {
		twice, err := a.shared(ctx, rival, &p.Manifest)
		if err != nil {
			return nil, err
		}
		all = append(all, twice...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// DuplicatesWeight estimates the memory in bytes that Duplicates needs.
func (p *Part) DuplicatesWeight() int64 {
	most := int64(0)
	for _, rival := range p.rivals {
		most = max(most, rival.idsWeight())
	}
	return p.idsWeight() + most
}

// CubeWeight estimates the memory in bytes for reading the segment's cube. Older segments
// without a recorded size are assumed to have a typical one.
func (m *Manifest) CubeWeight() int64 {
	size := m.cube
	if size == 0 {
		size = 64<<10 + 9*min(m.Records, maxListedIDs)
	}
	return cubeGrowth * size
}

// cubeGrowth is the approximate ratio of a cube's size in memory to its encoded size.
const cubeGrowth = 4

// idsWeight estimates the memory in bytes that ids needs: all ids, twice while they are
// collected, and the decoded ids of a group.
func (m *Manifest) idsWeight() int64 {
	weight := m.CubeWeight() + 16*m.Records
	if m.Records > maxListedIDs {
		weight += groupRows * idWeight
	}
	return weight
}

// idWeight estimates the memory in bytes for the decoded id of a record.
const idWeight = 96

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// shared returns the ids that two segments have in common. Segments are immutable, so the
// result is cached.
func (a *Archive) shared(ctx context.Context, x, y *Manifest) ([]uint64, error) {
	key := x.Name + "&" + y.Name
	if v, ok := a.duplicates.get(key); ok {
		return v.([]uint64), nil
	}
	if x.Records > y.Records {
		x, y = y, x
	}
	few, err := a.ids(ctx, x)
	if err != nil {
		return nil, err
	}
	many, err := a.ids(ctx, y)
	if err != nil {
		return nil, err
	}
	var both []uint64
	for _, id := range few {
		at, found := slices.BinarySearch(many, id)
		if found {
			both = append(both, id)
		}
		many = many[at:]
	}
	a.duplicates.put(key, both, int64(8*len(both)))
	return both, nil
}
