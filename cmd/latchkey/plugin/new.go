package plugin

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// templates has two archives for each language: what a new project has of its own,
// and the SDK that goes with it, which TestSDKArchives makes from plugins/sdk.
//
//go:embed templates/*.txtar
var templates embed.FS

// languages are those that there is a template for.
func languages() []string {
	var names []string
	files, _ := templates.ReadDir("templates")
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), ".project.txtar"); ok {
			names = append(names, name)
		}
	}
	return names
}

// moduleName is what a manifest allows for a module, in lower case: it becomes
// the name of files and, in upper case, the beginning of the command's.
var moduleName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// newProject makes a folder with a plugin that builds, and its test.
func newProject(args []string, stdout, stderr io.Writer) int {
	lang := ""
	words, err := options(args, false, map[string]func(string) error{
		"--lang": func(v string) error {
			if !slices.Contains(languages(), v) {
				return fmt.Errorf("the languages are %s", strings.Join(languages(), ", "))
			}
			lang = v
			return nil
		},
	}, nil)
	switch {
	case err != nil:
		return usageError(stderr, err.Error())
	case lang == "" || len(words) == 0 || len(words) > 2:
		return usageError(stderr, "new takes --lang "+strings.Join(languages(), "|")+", the plugin's name, and the folder if it is another")
	case !moduleName.MatchString(words[0]):
		return usageError(stderr, fmt.Sprintf("%q cannot be a plugin's name: lower case letters, digits, '_' and '-', beginning with a letter, 64 at most", words[0]))
	}
	name, dir := words[0], words[len(words)-1]
	if err := writeProject(lang, name, dir); err != nil {
		return failed(stderr, err)
	}
	fmt.Fprintf(stdout, "%s: a plugin in %s\n", dir, lang)
	fmt.Fprintf(stdout, "  cd %s && sh build.sh                            builds %s.wasm\n", dir, name)
	fmt.Fprintf(stdout, "  latchkey plugin test %s.wasm %s.transcript      tries it\n", name, name)
	return exitOK
}

// writeProject fills a folder that is not there yet, or is empty.
func writeProject(lang, name, dir string) error {
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, archive := range []string{lang + ".project.txtar", lang + ".sdk.txtar"} {
		text, err := templates.ReadFile("templates/" + archive)
		if err != nil {
			return err
		}
		for _, f := range txtar.Parse(text).Files {
			content := f.Data
			if strings.HasSuffix(archive, ".project.txtar") {
				f.Name, content = fill(f.Name, name), []byte(fill(string(f.Data), name))
			}
			path := filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill puts the plugin's name into a template: NAME in commands, name in files.
func fill(text, name string) string {
	return strings.NewReplacer("{{name}}", name, "{{NAME}}", strings.ToUpper(name)).Replace(text)
}
