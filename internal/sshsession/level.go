package sshsession

import "slices"

// levels are the values of LogLevel (ssh_config(5)), as ssh's escape sequences name them
// (log.c).
func levels() []string {
	return []string{"SILENT", "FATAL", "ERROR", "INFO", "VERBOSE", "DEBUG", "DEBUG2", "DEBUG3"}
}

// Places in levels.
const (
	levelQuiet = iota
	levelFatal
	levelError
	levelInfo
	levelVerbose
	levelDebug
)

// setLevel sets the level of LogLevel.
func (r *run) setLevel() {
	name := r.config.LogLevel
	switch name {
	case "QUIET":
		name = "SILENT"
	case "DEBUG1":
		name = "DEBUG"
	}
	level := slices.Index(levels(), name)
	if level < 0 {
		level = levelInfo
	}
	r.level.Store(int32(level))
}

// changeLevel is ~v and ~V. It returns the new level's name.
func (r *run) changeLevel(more bool) string {
	level := int(r.level.Load())
	if more {
		level = min(level+1, len(levels())-1)
	} else {
		level = max(level-1, levelQuiet)
	}
	r.level.Store(int32(level))
	r.service.UI.SetQuiet(level == levelQuiet)
	r.service.UI.SetVerbose(level >= levelDebug)
	return levels()[level]
}

// isInfoShown reports whether ssh would show messages of LogLevel INFO.
func (r *run) isInfoShown() bool { return r.level.Load() >= levelInfo }

// isErrorShown reports whether ssh would show messages of LogLevel ERROR.
func (r *run) isErrorShown() bool { return r.level.Load() >= levelError }

// isVerbose reports whether ssh would show messages of LogLevel VERBOSE.
func (r *run) isVerbose() bool { return r.level.Load() >= levelVerbose }
