package pii

import (
	"strings"
	"sync"

	"gateway/shared/guard/scan/lexicon"
)

// word is a word with its roles.
type word struct {
	lexicon.Word
	what uint16
}

// before is the number of words before the indicator where an address may begin.
const before = 6

type walker struct {
	finder *finder
	set    Set
	reader lexicon.Reader
	last   [8]word // the latest words, the current one at n modulo 8
	n      int     // words before the current one
	end    int     // end of the last match among words
}

// words scans the words once. A copy of the reader looks ahead after a sign, up to a limit.
func (f *finder) words(set Set) {
	w := walker{finder: f, set: set, reader: lexicon.Reader{Text: f.text}}
	known := lists()
	for ; ; w.n++ {
		one := &w.last[w.n%len(w.last)] // read in place: the words are most of the time of a check
		if !w.reader.Next(&one.Word) {
			return
		}
		one.what, _ = known.Find(one.Hash)
		if (one.what != 0 || one.Capital) && one.Start >= w.end {
			w.look(one)
		}
	}
}

func next(r *lexicon.Reader) (w word, ok bool) {
	if ok = r.Next(&w.Word); ok {
		w.what, _ = lists().Find(w.Hash)
	}
	return w, ok
}

func (w *walker) put(start, end int, k Kind) {
	w.finder.out = append(w.finder.out, found{start, end, k})
	w.end = end
}

// back returns the k-th word before the current one, from 1.
func (w *walker) back(k int) *word {
	if k > w.n || k >= len(w.last) {
		return nil
	}
	return &w.last[(w.n-k)%len(w.last)]
}

// joined reports whether two words are separated only by a space, or by one of signs and a
// space.
func (w *walker) joined(a, b int, signs string) bool {
	gap := w.finder.text[a:b]
	if gap == " " {
		return true
	}
	rest := strings.TrimRight(gap, " ")
	return len(gap)-len(rest) <= 1 && len(rest) <= 1 && (rest == "" || strings.Contains(signs, rest))
}

func (w *walker) look(one *word) {
	if w.set.has(Address) && w.address(one) {
		return
	}
	if !w.set.has(Name) {
		return
	}
	switch {
	case one.Capital && one.what&(first|doubtful) != 0 && !w.named(one):
		w.byFirst(one)
	case one.what&title != 0:
		w.behind(one, ".", 3, true)
	case one.what&alone != 0, one.what&introduce != 0 && w.introduced():
		w.behind(one, ",:", 3, false)
	case one.what&subject != 0 && one.End < len(w.finder.text) && (w.finder.text[one.End] == ':' || w.finder.text[one.End] == '='):
		w.behind(one, ":=", 3, false)
	}
}

// named reports whether a word ends the name of something other than a person: University of
// Michael, Saint Martin Island.
func (w *walker) named(one *word) bool {
	p := w.back(1)
	return p != nil && p.End+1 == one.Start && p.Capital && (p.Hash == saint || p.Hash == san)
}

var saint, san = lexicon.Hash("saint"), lexicon.Hash("san")

// introduced reports whether the preceding word is the subject of an introduction: my name is.
func (w *walker) introduced() bool {
	p := w.back(1)
	return p != nil && p.what&subject != 0
}

// part reports whether a word can be part of a name.
func (w *walker) part(one *word) bool {
	return one.Capital && one.what&never == 0 && class[w.finder.text[one.Start]]&digit == 0 && (one.End-one.Start > 1 || one.One != 0)
}

// byFirst finds a name that begins with a first name.
func (w *walker) byFirst(one *word) {
	end, more := w.rest(one.End, 2)
	p := w.back(1)
	begins := p == nil || p.End < one.Start-1 && strings.ContainsAny(w.finder.text[p.End:one.Start], ".!?\n")
	switch {
	case more == 0 && one.what&first == 0:
		return
	case more > 0 && one.what&first == 0 && begins && more == 1 && w.common(one.End):
		return
	}
	w.put(one.Start, end, Name)
}

// common reports whether nothing explains the capital letter of the following word. A doubtful
// first name needs more than such a word.
func (w *walker) common(at int) bool {
	r := lexicon.Reader{Text: w.finder.text[at:min(len(w.finder.text), at+64)]}
	two, ok := next(&r)
	return ok && two.what&(street|road|rue|state|unit) != 0
}

// behind finds a name that begins directly after a word.
func (w *walker) behind(one *word, signs string, most int, titled bool) {
	r := w.reader
	two, ok := next(&r)
	if !ok || !w.joined(one.End, two.Start, signs) || !w.part(&two) {
		return
	}
	if titled && (!one.Capital && one.what&(street|first) != 0 || w.finder.text[one.Start:one.End] == "Don") {
		return
	}
	if titled && two.End-two.Start == 1 && two.End < len(w.finder.text) && w.finder.text[two.End] != '.' {
		return
	}
	end, _ := w.rest(two.End, most-1)
	w.put(two.Start, end, Name)
}

// rest takes up to the given number of further parts of a name from at. It returns the end of
// the name and the number of parts.
func (w *walker) rest(at, most int) (end, more int) {
	r := lexicon.Reader{Text: w.finder.text[at:min(len(w.finder.text), at+80)]}
	end = at
	seen := at
	for more < most {
		one, ok := next(&r)
		if !ok {
			break
		}
		one.Start, one.End = one.Start+at, one.End+at
		gap := w.finder.text[seen:one.Start]
		initial := seen > at && gap == ". " && w.finder.text[seen-2] == ' '
		if gap != " " && gap != "-" && !initial {
			break
		}
		if one.what&particle != 0 && !one.Capital {
			seen = one.End
			continue
		}
		if !w.part(&one) {
			break
		}
		seen, end = one.End, one.End
		if one.End-one.Start == 1 { // an initial counts only with the name that follows
			continue
		}
		more++
	}
	return end, more
}

// Roles of words in names and addresses.
const (
	first     uint16 = 1 << iota // a first name
	doubtful                     // a first name that is also a word or a place
	title                        // a title before a name
	introduce                    // "is": the end of an introduction
	subject                      // "name": the subject of an introduction
	alone                        // introduces a name alone
	never                        // never part of a name, although capitalized
	particle                     // a particle within names
	street                       // the last word of a street
	road                         // the same, also in lower case
	rue                          // the first word of a street
	state                        // of the United States, by its two letters
	box                          // for mail
	unit                         // in a building
)

// wordsOf lists the words of each role, folded like a Reader folds them.
var wordsOf = map[uint16]string{
	first: `aaron abdul abigail adam adrian adriana agnes ahmad ahmed aisha alan albert alberto alejandra alejandro alessandra alessandro alexander alexandra alexei alfonso alfred alfredo ali alice alicia
		alina alison allison amanda amelia amir amy ana anastasia anders andrea andreas andrei andres andrew andrzej angela angelika anita anja ann anna anne annette annika anthony antoine anton antonia antonio
		anya ariana armando arthur astrid aurelie barbara beatrice beatriz benjamin bernard bernd bernhard beth bettina bianca birgit bjorn bogdan boris brandon brenda brian bridget bruno bryan caitlin camila
		camille carl carla carlos carmen carol carolina caroline catherine cathy cecilia charles charlie chiara chloe chris christian christina christine christoph christopher cindy claire clara claude
		claudia claudio claus connor constance corinne cristina cynthia dagmar daniel daniela danielle danny dariusz darren dave david deborah debra denise dennis derek diana diane diego dieter dimitri
		dmitri dolores dominik dominique donald donna doris dorothy douglas duncan edgar eduardo edward edwin eileen elaine eleanor elena elisa elisabeth elise elizabeth ella ellen elsa emil emilia emily emma
		emmanuel enrico enrique eric erica erik erika ernst esteban esther eugene eva evelyn fabian fatima federico felipe fernanda fernando fiona francesca francesco francisco franz frederic
		frederick friedrich fritz gabriel gabriela gabriele gareth gary geoffrey georg george gerald gerard gerhard gianluca gilbert giorgio giovanni giulia giuseppe gloria gonzalo gordon greg gregory greta
		guillaume guillermo gunther gustavo hannah hans harald harold haruki hassan heather hector heidi heike heinrich heinz helen helena helga helmut henri henrik henry herbert hernan hiroshi holger
		howard hugo ibrahim ignacio igor ines inga ingrid irene irina isaac isabel isabella isabelle ivan ivana jaime jakub james jan jane janet janice javier jean jeff jeffrey jennifer jens jeremy jerome
		jesse jessica jesus jill jim joachim joan joanna joao joaquin johan johanna johannes john johnny jonas jonathan jorge jose josef joseph joshua juan juana juanita judith jules julia julian juliana julie juliette
		julio jurgen justin kaitlyn karen karin karl karolina katarina kate katharina katherine kathleen kathryn katie katja katrin keith kelly kenji kenneth kerstin kevin khalid kimberly klaus krzysztof kurt
		kyle larry lars laura lauren laurent leila lena leon leonard leonardo leslie liam linda lisa lorenzo lothar louis louise luca lucas lucia luciana luigi luis luisa lukas lydia maciej magdalena manfred manuel
		manuela marc marcel marcin marco marcos marcus margaret margarita maria mariana marie marina mario marion markus marta martha martin martina mary maryam mateo mathieu mathilde matteo matthew matthias
		maureen maurice mauricio megan mehmet melanie melissa michael michaela michel michele michelle miguel mike mikhail miriam mohamed mohammad mohammed monica monika monique muhammad mustafa nadia nancy
		naomi natalia natalie nathan nathalie neil nicholas nicola nicolas nicole nigel nikolai nils noah norbert norman olga oliver olivia olivier omar oscar otto pablo pamela paola paolo pascal patricia patrick
		paul paula pauline pavel pawel pedro peggy peter petra philip philippe phillip pierre pilar piotr priya rachel rafael rahul raj rajesh ralf ralph ramon raphael raul rebecca regina reinhard renate rene
		ricardo riccardo richard rita robert roberta roberto rodrigo roger roland rolf ronald rosa rosemary roxanne ruth ryan sabine sabrina sally samantha samir samuel sandra sanjay sara sarah scott sean
		sebastian sergei sergey sergio sharon sheila shirley sigrid silvia simon simona simone sofia sonia sophia sophie stefan stefania stefano steffen stephan stephanie stephen steven stuart
		sunita susan susanne suzanne svetlana sven sylvia takashi tamara tania tanja tara tatiana teresa theodore theresa therese thierry thomas tiffany tim timothy tobias todd tomas tomasz tony tracy
		ulrich ulrike ursula uwe valentina valeria valerie vanessa vera veronica veronika vicente victor victoria viktor vincent vincenzo vladimir walter waltraud wanda wendy werner wilhelm william wolfgang
		xavier yasmin yolanda yosef yuki yusuf yves yvonne zachary zoe`,
	doubtful: `alex angel april art ashley august austin autumn bella bill bob brad brad carter cash chad chase charlotte christian christmas clay cliff crystal dale dallas dawn dean destiny don drew duke earl eden
		faith florence forest frank gene georgia grace grant guy harper harry heath hope hunter iris israel ivy jack jackson jade jasmine jason jay jordan josh joy june ken lance lee lily logan lou luke madison
		mark mason max may mercedes miles morgan nick nora olive pam paris pat pearl pete phil rich rob robin rod rose ruby rusty sam sandy savannah serge sidney skip sky stella steve sue summer sunny
		taylor ted terry tom trinity troy tyler van virginia wade ward will willow wes woody ben dan matt joe jon ron ray roy meg kim lin mia milan lorraine marshall martinez lincoln hamilton kelvin watt celsius santiago
		sofia asia india chelsea brooklyn preston blake cole ross graham craig dominic felix viola violet daisy jasper`,
	title:     "mr mrs ms miss mx dr prof professor herr frau monsieur madame mme mlle senor senora sr sra srta signor signora sig don dona sir madam rev judge officer pan pani fru hr dhr mevr mevrouw doctor doktor",
	introduce: "is are es est e ist lautet was es",
	subject:   "name names nombre nome nom naam navn namn surname nachname vorname apellido cognome fullname firstname lastname patient",
	alone:     "mappelle llamo chiamo heise heisse chamo heet heter signed sincerely",
	never: `the a an this that these those my your his her its our their i we you he she it they and or but so if then when where who what which how why not no yes ok please thanks thank dear hello hi hey
		january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday jan feb mar apr jun jul aug sep oct nov dec
		president minister chairman speaker director manager chancellor secretary senator governor mayor king queen prince princess lord lady captain general colonel
		inc ltd llc gmbh corp company university college school hospital bank church street road avenue university institute department office team group airport station theorem equation law syndrome disease museum
		park river lake mountain island beach city town county country north south east west new old great airlines award prize foundation
		german french english spanish italian american british chinese japanese russian indian european christian jewish muslim catholic
		is are was were be been being have has had do does did can could will would shall should may might must from to in on at by for with about of as into like through after over between out against
		server service user admin customer client support account invoice order number id email phone address date regards best kind yours faithfully error api json http sql python java linux windows
		here there today tomorrow yesterday now just only also very well good all any some every each other another both few more most
		project product field value column table file variable function class method model version key token string integer`,
	particle: "van von de der den del della di da dos das la le du bin ibn al el ten ter zu af av",
	street:   "st street ave avenue rd road blvd boulevard lane ln drive dr court ct place pl square sq terrace ter way parkway pkwy circle cir highway hwy close crescent cres mews row grove gardens hill walk",
	road:     "street avenue boulevard blvd rd",
	rue: `rue avenue av bd boulevard place chemin allee impasse quai cours calle avenida avda plaza paseo carrera via viale piazza corso largo vicolo rua travessa praca alameda ul ulica aleja
		strada bulevardul utca`,
	state: "al ak az ar ca co ct de fl ga hi id il in ia ks ky la me md ma mi mn ms mo mt ne nv nh nj nm ny nc nd oh ok or pa ri sc sd tn tx ut vt va wa wv wi wy dc",
	box:   "box postfach apartado postbus",
	unit:  "apt apartment suite ste unit flat floor fl room",
}

// lists maps the words to their roles.
var lists = sync.OnceValue(func() *lexicon.Set {
	m := map[uint64]uint16{}
	for what, list := range wordsOf {
		for _, w := range strings.Fields(list) {
			m[lexicon.Hash(w)] |= what
		}
	}
	return lexicon.NewSet(m)
})

// compounds are endings of street names.
var compounds = []string{"straße", "strasse", "str.", "str", "weg", "platz", "allee", "gasse", "straat", "gracht", "laan", "gatan", "gata", "vägen", "gade", "vej", "ufer", "damm"}
