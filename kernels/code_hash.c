/// Build tool: writes one MHA_ENTRY(name, "hash") line for each kernel's object file.
///
/// The hash (FNV-1a, 64 bits) covers what the kernel executes and reads: the bytes of .text* and
/// .rodata*, and their relocations as (type, offset, symbol, addend). String sections are left out:
/// the descriptor's texts are not code. Debug information and comments are not in these sections,
/// so an edit that changes no instruction keeps the hash (release builds define NDEBUG, or __LINE__
/// in an assert would).
///
/// usage: mha_code_hash OUTPUT OBJECT...   (ELF64, the host's byte order; OBJECT is <name>.c.o)
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fnv1a(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3u;  // FNV prime, 64 bits
    }
    return hash;
}

static unsigned char *read_file(const char *path, size_t *bytes) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        data = size > 0 ? malloc((size_t)size) : NULL;
        rewind(file);
        if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
            free(data);
            data = NULL;
        }
        *bytes = data ? (size_t)size : 0;
    }
    if (file) {
        fclose(file);
    }
    return data;
}

static bool is_code(const char *name) {
    return strncmp(name, ".text", 5) == 0 || strncmp(name, ".rodata", 7) == 0;
}

/// Tells whether [offset, offset + length) lies within the file.
static bool inside(uint64_t offset, uint64_t length, size_t bytes) {
    return offset <= bytes && length <= bytes - offset;
}

static bool hash_relocations(uint64_t *hash, const unsigned char *elf, const Elf64_Shdr *sections,
                             const Elf64_Shdr *rela, const char *section_names) {
    const Elf64_Shdr *symtab = &sections[rela->sh_link];
    const char *names = (const char *)elf + sections[symtab->sh_link].sh_offset;
    for (uint64_t i = 0; i < rela->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela entry;
        Elf64_Sym symbol;
        memcpy(&entry, elf + rela->sh_offset + i * sizeof(entry), sizeof(entry));
        const uint64_t index = ELF64_R_SYM(entry.r_info);
        if (index >= symtab->sh_size / sizeof(symbol)) {
            return false;
        }
        memcpy(&symbol, elf + symtab->sh_offset + index * sizeof(symbol), sizeof(symbol));
        // A section symbol has no name of its own.
        const char *name = ELF64_ST_TYPE(symbol.st_info) == STT_SECTION
                               ? section_names + sections[symbol.st_shndx].sh_name
                               : names + symbol.st_name;
        const uint64_t type = ELF64_R_TYPE(entry.r_info);
        *hash = fnv1a(*hash, &type, sizeof(type));
        *hash = fnv1a(*hash, &entry.r_offset, sizeof(entry.r_offset));
        *hash = fnv1a(*hash, &entry.r_addend, sizeof(entry.r_addend));
        *hash = fnv1a(*hash, name, strlen(name) + 1);
    }
    return true;
}

static bool hash_object(const char *path, uint64_t *hash) {
    size_t bytes = 0;
    unsigned char *elf = read_file(path, &bytes);
    bool good = false;
    Elf64_Ehdr header;
    if (elf && bytes >= sizeof(header)) {
        memcpy(&header, elf, sizeof(header));
        good = memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
               header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_shentsize == sizeof(Elf64_Shdr) &&
               inside(header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr), bytes) &&
               header.e_shstrndx < header.e_shnum;
    }
    if (!good) {
        free(elf);
        return false;
    }
    Elf64_Shdr *sections = malloc(header.e_shnum * sizeof(*sections));
    if (!sections) {
        free(elf);
        return false;
    }
    memcpy(sections, elf + header.e_shoff, header.e_shnum * sizeof(*sections));
    for (unsigned i = 0; i < header.e_shnum && good; i++) {
        good = sections[i].sh_type == SHT_NOBITS ||
               inside(sections[i].sh_offset, sections[i].sh_size, bytes);
        good = good && sections[i].sh_link < header.e_shnum;
    }
    const char *names = (const char *)elf + sections[header.e_shstrndx].sh_offset;
    *hash = 0xcbf29ce484222325u;  // FNV offset basis, 64 bits
    for (unsigned i = 0; i < header.e_shnum && good; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type == SHT_PROGBITS && is_code(names + section->sh_name) &&
            !(section->sh_flags & SHF_STRINGS)) {
            *hash = fnv1a(*hash, elf + section->sh_offset, section->sh_size);
        } else if (section->sh_type == SHT_RELA && section->sh_info < header.e_shnum &&
                   is_code(names + sections[section->sh_info].sh_name)) {
            good = hash_relocations(hash, elf, sections, section, names);
        }
    }
    free(sections);
    free(elf);
    return good;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: mha_code_hash OUTPUT OBJECT...\n", stderr);
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out) {
        fprintf(stderr, "mha_code_hash: cannot write %s\n", argv[1]);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        const char *name = slash ? slash + 1 : argv[i];
        uint64_t hash = 0;
        if (!hash_object(argv[i], &hash)) {
            fprintf(stderr, "mha_code_hash: %s is not an ELF64 object that can be read\n", argv[i]);
            fclose(out);
            return 2;
        }
        fprintf(out, "MHA_ENTRY(%.*s, \"%016llx\")\n", (int)strcspn(name, "."), name,
                (unsigned long long)hash);
    }
    return fclose(out) == 0 ? 0 : 2;
}
